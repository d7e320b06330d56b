# `make demo` and `make test` do everything on a fresh machine with Go, git and
# make; what else they need is installed by internal/tools/need.sh where it can be.

GO ?= go
BIN := bin/gpg-bridge

.PHONY: go build demo test check bench stress fuzz mutate clean

go:
	@command -v $(GO) >/dev/null || { echo '$(GO) is not in PATH: install Go 1.26 or later, or say where it is, as in make GO=/usr/local/go/bin/go' >&2; exit 1; }

build: go ## the program, in bin/
	$(GO) build -trimpath -o $(BIN) ./cmd/gpg-bridge

demo: build ## the main job, with nothing of yours touched
	@sh internal/tools/need.sh gnupg:gpg gpg-agent:gpg-agent git:git
	@$(GO) run ./internal/tools/demo $(BIN)

test: check ## everything, against real gpg, gpg-agent, ssh and sshd
	@sh internal/tools/need.sh --go-on gcc:gcc libc6-dev: gnupg:gpg gpg-agent:gpg-agent openssh-server:sshd openssh-client:ssh git:git fish:fish tcsh:tcsh procps:ps bash:bash vim:vim rsync:rsync socat:socat bsdutils:script dropbear-bin:dropbear busybox:busybox ksh93u+m:ksh mksh:mksh yash:yash zsh:zsh pinentry-curses:pinentry-curses pinentry-tty:pinentry-tty
	@sh internal/testkit/release/host.sh build --go-on
	$(GO) test -race -timeout 12m ./...

check: go ## formatting, and that it builds and vets for every system
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these'; exit 1; }
	$(GO) mod tidy -diff
	GOOS=linux $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) build -o /dev/null ./cmd/gpg-bridge
	GOOS=windows $(GO) build -o /dev/null ./cmd/gpg-bridge

bench: build ## gpg-bridge beside OpenSSH's ssh -R, in one run
	@sh internal/tools/need.sh gnupg:gpg gpg-agent:gpg-agent openssh-server:sshd openssh-client:ssh iproute2:ip
	@$(GO) run ./internal/tools/bench $(BIN)

stress: build ## 1,000 clients at once, 100,000 sessions; SCALE=0.1 for a tenth
	@sh internal/tools/need.sh gnupg:gpg gpg-agent:gpg-agent openssh-server:sshd openssh-client:ssh
	@$(GO) run ./internal/tools/stress -scale $(or $(SCALE),1) $(BIN)

FUZZTIME ?= 1m

fuzz: go ## every fuzz target for FUZZTIME, one after the other; TARGETS names some
	@sh internal/tools/need.sh --go-on openssh-client:ssh-keygen
	@GO='$(GO)' sh internal/tools/fuzz.sh $(FUZZTIME) $(TARGETS)

mutate: go ## change the code, line by line, and see that a test notices; TARGETS='assuan private' for some
	@sh internal/tools/need.sh --go-on gnupg:gpg gpg-agent:gpg-agent openssh-server:sshd openssh-client:ssh
	@$(GO) run ./internal/tools/mutate $(TARGETS)

clean:
	rm -rf bin
