"""A small shell, enough for the command lines that people write down: ``sh -c`` on a simulated node.

It knows sequences, ``&&``, ``||``, ``!``, pipes, groups, subshells, ``if``, ``for``, ``while`` and ``until``,
background with ``wait`` and ``$!``, redirections of any file number, here-documents, ``exec`` with redirections,
quoting, ``$?``, variables, ``$(…)``, ``$((…))`` and file patterns. It does not know functions, ``case`` or parameters,
and says so. A pipe passes on its data when the left side has ended.

    lexer, tree, syntax      text into words into a tree
    interpreter, arithmetic  the tree at work
"""
