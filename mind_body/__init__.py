"""mind-body carries persistent agents on a Linux host. This page is the map; tests/unit/test_architecture.py holds it.

Five kinds of module; the first word of a docstring says which:
    Shapes    frozen records, bounds, parsing, ports             call nothing outside
    Rule      compute over values; the instant is an argument    import no door, are not async, do not log
    Door      speak to one outside thing, translate its errors   decide nothing
    Loop      read, decide, write, act, in a stated order; log   hold no rules
    Wiring    build doors, give them to loops, exit codes        nothing else

Rooms, from the roof down. An arrow points down, never up or sideways between organs:
    cli                                  the operator's verbs
    mouth  heartbeat  persona  self_run  lease   the organs; they meet in the mind and import nothing of each other
    matrix  model                        the homeserver, the providers
    host  control                        the machine, what is allowed
    mind                                 what is remembered
    ids clock money errors config settings home shared log journal_kinds crash data sqlite_file    ground
"""
