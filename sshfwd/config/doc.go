// Package config finds out what ssh_config(5) says about a host: what ssh -G prints, or,
// where there is no ssh, what its own reader makes of the files. It resolves names and
// settings, and connects to nothing.
package config
