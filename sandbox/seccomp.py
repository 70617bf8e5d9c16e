"""The seccomp filter of the supervisor and every process it starts, on every backend.

Namespaces already limit what these calls can reach; without them the agent can attack much less of the kernel. All
processes of a sandbox have one user id, so the filter also keeps the agent from starving the supervisor. It is a list
of refused calls, written as BPF: the supervisor needs the program as bytes for each architecture, and the bindings on
PyPI (pyseccomp) need the machine's libseccomp.
"""

import functools
import struct
from collections.abc import Mapping
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_CLONE_NEWUSER = 0x10000000
_X32 = 0x40000000
# Families that the network namespace bounds, and UNIX sockets. AF_VSOCK would reach a virtual machine's host.
_FAMILIES = (1, 2, 10, 16)


@dataclass(frozen=True, slots=True)
class _Machine:
    """The numbers of one architecture. `elf` is its number in ELF headers. Calls in `never` are always refused."""

    elf: int
    arch: int
    never: tuple[int, ...]
    unshare: int
    clone: int
    clone3: int
    socket: int
    prlimit: int


# Since Linux 5.0 new calls have one number on every architecture: io_uring, the new mount calls, clone3.
_NEW = (425, 426, 427, 428, 429, 430, 431, 432, 433, 442)
_MACHINES = (
    _Machine(  # x86_64
        elf=62,
        arch=0xC000003E,
        # mount umount2 pivot_root chroot setns swapon swapoff reboot init_module finit_module delete_module kexec_load
        # kexec_file_load bpf perf_event_open userfaultfd add_key request_key keyctl acct quotactl open_by_handle_at
        # setpriority ioprio_set sched_setparam sched_setscheduler sched_setaffinity sched_setattr
        # shmget msgget semget: their objects outlive the process, so they would take the checker's memory
        never=(
            *(165, 166, 155, 161, 308, 167, 168, 169, 175, 313, 176, 246),
            *(320, 321, 298, 323, 248, 249, 250, 163, 179, 304),
            *(141, 251, 142, 144, 203, 314),
            *(29, 68, 64),
            *_NEW,
        ),
        unshare=272,
        clone=56,
        clone3=435,
        socket=41,
        prlimit=302,
    ),
    _Machine(  # aarch64
        elf=183,
        arch=0xC00000B7,
        never=(
            *(40, 39, 41, 51, 268, 224, 225, 142, 105, 273, 106, 104),
            *(294, 280, 241, 282, 217, 218, 219, 89, 60, 265),
            *(140, 30, 118, 119, 122, 274),
            *(194, 186, 190),
            *_NEW,
        ),
        unshare=97,
        clone=220,
        clone3=435,
        socket=198,
        prlimit=261,
    ),
)


@functools.cache
def filters() -> Mapping[int, bytes]:
    """Return the filter of each machine, by its ELF number, as an array of `struct sock_filter`."""
    return {machine.elf: b"".join(_filter(machine)) for machine in _MACHINES}


def _filter(machine: _Machine) -> list[bytes]:
    program = [
        *(_op(_LOAD, _ARCH), _op(_EQUAL, machine.arch, 1, 0), _op(_RETURN, _KILL)),
        *(_op(_LOAD, _NUMBER), _op(_AT_LEAST, _X32, 0, 1), _refuse(_EPERM)),
    ]
    for number in machine.never:
        program += [_op(_EQUAL, number, 0, 1), _refuse(_EPERM)]
    # Its flags are in memory, which a filter cannot read; libraries fall back to clone.
    program += [_op(_EQUAL, machine.clone3, 0, 1), _refuse(_ENOSYS)]
    for number in (machine.unshare, machine.clone):
        program += _where(number, [_op(_ANY_BIT, _CLONE_NEWUSER, 0, 1), _refuse(_EPERM)])
    # With one user id the agent could limit the supervisor: a process may only set its own limits.
    program += _where(machine.prlimit, [_op(_EQUAL, 0, 1, 0), _refuse(_EPERM)])
    families = [_op(_EQUAL, family, len(_FAMILIES) - at, 0) for at, family in enumerate(_FAMILIES)]
    program += _where(machine.socket, [*families, _refuse(_EAFNOSUPPORT)])
    return [*program, _op(_RETURN, _ALLOW)]


def _where(number: int, then: list[bytes]) -> list[bytes]:
    """Run `then` for one call, with its first argument loaded; the call is allowed unless `then` refuses it."""
    body = [_op(_LOAD, _FIRST_ARGUMENT), *then, _op(_RETURN, _ALLOW)]
    return [_op(_EQUAL, number, 0, len(body)), *body]


def _refuse(error: int) -> bytes:
    return _op(_RETURN, _ERRNO | error)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
