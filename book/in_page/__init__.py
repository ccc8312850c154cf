"""Python in the page: which cells can run there, and the files that they need, from this site alone."""
