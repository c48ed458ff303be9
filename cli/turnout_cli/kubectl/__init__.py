"""`kubectl turnout`: the plugin of kubectl.

`kube.py` runs kubectl, which knows clusters and credentials; `facts.py` and `live.py` decide what is shown (pure); `tables.py` prints.
"""
