"""Bits for each layer of a float model, chosen by measured accuracy and predicted costs.

search.py  the plans that are tried, and the one that is chosen
table.py   plans as JSON and as a table
"""
