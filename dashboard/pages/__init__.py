"""One module a page: its context as a class, and the function that reads it."""
