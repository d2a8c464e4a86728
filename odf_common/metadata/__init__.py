"""The metadata model of Open Data Fabric: blocks, events and their fragments as frozen values.

Based on ODF 0.36, with what 0.37 and 0.38 added. Values are checked for shape only; whether a block may follow another
is decided by `odf_common.chain`.
"""
