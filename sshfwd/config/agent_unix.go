//go:build unix

package config

// defaultAgent is empty: without SSH_AUTH_SOCK there is no agent.
const defaultAgent = ""
