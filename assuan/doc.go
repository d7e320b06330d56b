// Package assuan implements the line protocol that gpg and gpg-agent speak on
// their socket. It also reads the files that stand for a socket where there can be
// none (Windows, Cygwin, redirects).
//
// A conversation is made of lines. The agent greets with OK. The client sends
// one command; the agent answers with any number of status (S), data (D) and
// comment (#) lines, and then with exactly one OK or ERR. In between it may ask
// something back with INQUIRE: the client then sends D lines and END, or CAN,
// and the response goes on. Every decision here is made on whole lines, never on
// substrings: "D OK" does not end a response and "D END" does not end a block.
//
// The rules are those of libassuan 2.5 and 3.0, which agree on them; each is
// cited where it is used (assuan-buffer.c, assuan-inquire.c,
// assuan-handler.c, client.c, assuan-socket.c).
//
// Nothing in this package does I/O, and nothing in it allocates per line.
package assuan
