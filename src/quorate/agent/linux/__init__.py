"""This machine, as an agent's hardware: real processes, real files, real ports.

``machine`` puts the parts together and is all that others import. ``child`` is one process with everything it starts;
``output`` is what is kept of what it says; ``roots`` says where the node's paths really are when we run in a container;
``files`` are the file operations, which block, and ``aside`` is where they may do so without stopping the agent.

Whatever hangs in the kernel hangs alone: a command that cannot be killed and a file that cannot be read cost their
caller an error, after a while, and nobody else anything.
"""

from quorate.agent.linux.machine import LinuxMachine
from quorate.agent.linux.roots import Roots

__all__ = ["LinuxMachine", "Roots"]
