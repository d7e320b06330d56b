// Package sshmaster has the user's own ssh connect where our client cannot do what ssh_config or
// a flag asks for: GSSAPI, PKCS#11, X11 and the rest of [config.Lack]. That ssh shares its
// connection (ControlMaster in ssh_config(5)), so the bridge and the session both use it
// (package mux), and there is one log-in.
//
// It is the exception, since it is slower (three processes instead of one), keeps no pinentry
// off the session's terminal, and does not exist on Windows.
//
// One ssh logs in, with the user's flags and without a session, and goes to the background; the
// bridge comes up; then another ssh, with all of the user's words, is the session over the
// connection of the first. One ssh alone would begin the command before gpg works on the host.
// This is also what ssh itself does with ControlPersist (control_persist_detach in OpenSSH's
// ssh.c), so programs that call ssh know it.
package sshmaster
