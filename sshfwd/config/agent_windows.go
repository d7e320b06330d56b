package config

// defaultAgent is the pipe of Windows' own ssh-agent service.
const defaultAgent = `\\.\pipe\openssh-ssh-agent`
