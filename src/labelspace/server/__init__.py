"""The service: suggestions, reasons, labels, feedback and learning over HTTP, and a page (extra ``serve``)."""
