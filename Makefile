# `make demo` and `make test` do everything on a fresh machine with Go, git and
# make; what else they need is installed by internal/tools/need.sh where it can be.

GO ?= go
BIN := bin/gpg-bridge

.PHONY: go build demo test programs tests check here elsewhere bench stress fuzz mutate clean

go:
	@command -v $(GO) >/dev/null || { echo '$(GO) is not in PATH: install Go 1.26 or later, or say where it is, as in make GO=/usr/local/go/bin/go' >&2; exit 1; }

build: go ## the program, in bin/
	$(GO) build -trimpath -o $(BIN) ./cmd/gpg-bridge

demo: build ## the main job, with nothing of yours touched
	@sh internal/tools/need.sh gnupg:gpg gpg-agent:gpg-agent git:git
	@$(GO) run -trimpath ./internal/tools/demo $(BIN)

# What another system's vet finds is seldom new: it gets the time in which the tests wait.
test: go ## everything, against real gpg, gpg-agent, ssh and sshd
	@$(MAKE) --no-print-directory -j2 here programs
	@$(MAKE) --no-print-directory -j2 tests elsewhere

programs:
	@sh internal/tools/need.sh --go-on gcc:gcc libc6-dev: gnupg:gpg gpg-agent:gpg-agent openssh-server:sshd openssh-client:ssh git:git fish:fish tcsh:tcsh procps:ps bash:bash vim:vim rsync:rsync ansible-core:ansible mosh:mosh sshfs:sshfs pdsh:pdsh xauth:xauth softhsm2:softhsm2-util debootstrap:debootstrap socat:socat bsdutils:script dropbear-bin:dropbear busybox:busybox ksh93u+m:ksh mksh:mksh yash:yash zsh:zsh pinentry-curses:pinentry-curses pinentry-tty:pinentry-tty
	@sh internal/testkit/release/host.sh build --go-on

# Two packages and two tests of each at once: with more, tests miss limits that are real time.
# `here` has vetted them.
tests:
	$(GO) test -race -vet=off -p 2 -parallel 2 -timeout 20m ./...

check: go here elsewhere ## formatting, and that it builds and vets for every system

# -trimpath as the program is built: what is compiled here is not compiled again.
here:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these'; exit 1; }
	$(GO) mod tidy -diff
	GOOS=linux $(GO) vet -trimpath ./...

# -N -l: nothing of it is run, and it compiles in two thirds of the time.
elsewhere: FAST := -gcflags='all=-N -l'
elsewhere:
	GOOS=darwin nice -n 19 $(GO) vet $(FAST) ./...
	GOOS=windows nice -n 19 $(GO) vet $(FAST) ./...
	GOOS=darwin nice -n 19 $(GO) build $(FAST) -o /dev/null ./cmd/gpg-bridge
	GOOS=windows nice -n 19 $(GO) build $(FAST) -o /dev/null ./cmd/gpg-bridge

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
