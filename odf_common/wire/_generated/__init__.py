"""Generated code; never edited by hand."""
