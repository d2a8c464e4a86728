"""The command `odf`."""
