// Package ports runs the user's own port forwards over an SSH connection, as ssh -L, -R and
// -D make them, with the SOCKS servers for the latter two.
package ports
