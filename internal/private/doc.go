// Package private keeps what gpg-bridge writes to this machine out of the hands
// of its other users: directories that are ours alone, the files in them, and
// the processes at the other end of a Unix socket.
//
// Nothing is checked by name and then used by name. A directory is opened
// (os.Root), and the open directory is checked: it must be no symbolic link, be
// owned by the user of this process and closed to all others, and lie in
// directories where nobody else can replace it. From then on files are reached
// through it, and each is checked after it was opened, too.
//
// On Windows there are no owner and mode to check: the directories lie in the
// user's profile and inherit its access list.
//
// Read it in this order: runtime.go (where the directory is), dir.go (directories),
// files.go (files and socket names in them), owner_unix.go (what is checked), peer.go
// (who is at the other end of a socket).
package private
