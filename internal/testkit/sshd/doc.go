// Package sshd runs the real OpenSSH sshd for tests, on 127.0.0.1 and a
// free port, with its own keys, and makes real Unix accounts to log in to.
//
// Start gives a running server, with a client key that is let in, a known_hosts
// file that knows it and an ssh_config that any client can use. NewAccount
// makes a throw-away account; that needs root, and without it the test is
// skipped (env.Missing). Everything ends with the test, by process id:
// sshd, its sessions, and the processes started in them, which are recognised by an
// environment variable (Linux) or by the account's user ID.
package sshd
