module gpg-bridge

go 1.26.0

require (
	github.com/Microsoft/go-winio v0.6.4
	github.com/gofrs/flock v0.13.1
	github.com/google/uuid v1.6.0
	github.com/kevinburke/ssh_config v1.6.0
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.10
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.58.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
