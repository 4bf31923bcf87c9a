"""Parts of training that two methods or more share."""
