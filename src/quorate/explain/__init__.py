"""Why a volume is as it is: pure functions over the objects, for ``quorate explain``.

``fetch`` lists what one volume depends on and puts it before the same ``observe`` that the controllers decide on, so
an explanation cannot know anything else than they do. ``story`` asks their pure functions the questions that a person
has: why each replica is where it is (the rejection table of ``quorate.placement``), what is under way and who blocks it
(waits of transitions, conditions), and what would happen if a node went down now (``volumes.effective``). ``text``
prints the answer.
"""
