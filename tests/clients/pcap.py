"""
A capture file for Wireshark's tools with the bytes of both sides of connections.

Capturing needs rights that tests may not have, so the packets are made: raw IPv4, with the port of a broker and one of
a client for each connection, a packet for what was received at once, and no checksums, which the tools ignore.
"""

import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

PIECE_BYTES_MAX = 60_000  # fits into an IPv4 packet

_SERVER_PORT = 9092  # the port where tools expect Kafka
_FIRST_CLIENT_PORT = 40_000
_LINKTYPE_IPV4 = 228
_TCP = 6
_SYN, _ACK = 0x02, 0x10
_LOOPBACK = socket.inet_aton("127.0.0.1")

_file_header = struct.Struct("<IHHiIII").pack
_packet_header = struct.Struct("<IIII").pack
_ip_header = struct.Struct(">BBHHHBBH4s4s").pack
_tcp_header = struct.Struct(">HHIIBBHHH").pack


class Piece(NamedTuple):
    """
    Bytes that one side of a connection received at once.
    """

    at: float
    connection: int
    by_client: bool
    data: bytes


class _Connection:
    """
    The sequence numbers of both sides.
    """

    def __init__(self, number: int) -> None:
        self._ports = {True: _FIRST_CLIENT_PORT + number, False: _SERVER_PORT}
        self._sent = {True: 0, False: 0}

    def opening(self, at: float) -> bytes:
        return self.packet(at, True, b"", _SYN) + self.packet(at, False, b"", _SYN | _ACK)

    def packet(self, at: float, by_client: bool, data: bytes, flags: int = _ACK) -> bytes:
        ports = self._ports[by_client], self._ports[not by_client]
        sent, acknowledged = self._sent[by_client], self._sent[not by_client]
        self._sent[by_client] += len(data) + (1 if flags & _SYN else 0)
        tcp = _tcp_header(*ports, sent, acknowledged, 5 << 4, flags, 0xFFFF, 0, 0) + data
        packet = _ip_header(4 << 4 | 5, 0, 20 + len(tcp), 0, 0, 64, _TCP, 0, _LOOPBACK, _LOOPBACK) + tcp
        return _packet_header(int(at), int(at % 1 * 1_000_000), len(packet), len(packet)) + packet


def capture(pieces: Iterable[Piece]) -> bytes:
    connections: dict[int, _Connection] = {}
    packets = [_file_header(0xA1B2C3D4, 2, 4, 0, 0, 0xFFFF, _LINKTYPE_IPV4)]
    for piece in pieces:
        if piece.connection not in connections:
            connections[piece.connection] = _Connection(piece.connection)
            packets.append(connections[piece.connection].opening(piece.at))
        packets.append(connections[piece.connection].packet(piece.at, piece.by_client, piece.data))
    return b"".join(packets)
