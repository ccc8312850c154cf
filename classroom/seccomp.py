"""What a process in the sandbox may not ask of the kernel: a small filter of system calls for bubblewrap.

A namespace hides files, processes and networks; it does not hide the kernel. Denied is what no answer needs: looking into
other processes, new namespaces and mounts, memory that no limit counts, sockets of kinds that a network namespace does
not cover, and interfaces with a record of holes.
"""

import platform
import struct

# (x86_64, aarch64); None: the machine has no such call
DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "personality": (135, 92),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "syslog": (103, 116),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "modify_ldt": (154, None),
    "uselib": (134, None),
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_NEW_NAMESPACE = 0x7E020080  # CLONE_NEWUSER, PID, NET, IPC, UTS, CGROUP, NS and TIME
_FAMILIES = (1, 2, 10)  # unix, internet 4 and 6
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def filter_program(machine=None):
    """Return the program as the bytes that `bwrap --seccomp` reads.

    >>> len(filter_program("x86_64")) % 8
    0
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise ValueError(f"there is no filter for {machine!r}; the sandbox knows {', '.join(_ARCHITECTURES)}")
    column = list(_ARCHITECTURES).index(machine)
    rules = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # the x32 numbers of the same calls
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
        *_deny(_CLONE3[column], _ENOSYS),  # its flags cannot be read here; callers fall back to clone
        *_argument(_CLONE[column], [(_ANY_BIT, 0, 1, _NEW_NAMESPACE), (_RETURN, 0, 0, _ERROR | _EPERM)]),
        *_argument(_SOCKET[column], _only(_FAMILIES)),
    ]
    for numbers in DENIED.values():
        if numbers[column] is not None:
            rules += _deny(numbers[column], _EPERM)
    rules.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *rule) for rule in rules)


def _deny(number, error):
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]


def _argument(number, rules):
    """Apply rules to the first argument of one call, then load its number again."""
    return [(_EQUAL, 0, len(rules) + 2, number), (_LOAD, 0, 0, 16), *rules, (_LOAD, 0, 0, 0)]


def _only(values):
    tests = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*tests, (_RETURN, 0, 0, _ERROR | _EAFNOSUPPORT)]
