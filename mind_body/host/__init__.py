"""The machine: sockets, locks, notifications, child processes, sandboxes."""
