"""The contracts as files, and the program that writes what is derived from them."""
