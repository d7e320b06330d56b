// Package compat answers what an agent before 2.3.8 refuses on a restricted connection and a
// newer gpg on the host cannot do without: KEYINFO, and HAVEKEY --list. It is an Agent between
// a session and its agent. docs/states-compat.md is generated from its table.
package compat
