"""Metadata chains: what a chain says so far, and what may be appended to it.

This package alone decides what a valid next block is.
"""
