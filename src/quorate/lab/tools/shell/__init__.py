"""A small shell, enough for the command lines that people write down: ``sh -c`` on a simulated node.

It knows sequences, ``&&``, ``||``, ``!``, pipes, groups, subshells, background, redirections of any file number,
``exec`` with redirections, quoting, ``$?``, variables and file patterns. It does not know loops, functions, here
documents, command substitution or arithmetic, and says "syntax error" to them. A pipe passes on its data when the left
side has ended.
"""
