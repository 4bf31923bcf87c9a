"""Serve suggestions, reasons, labels, feedback and learning over HTTP, with a web page (extra ``serve``)."""
