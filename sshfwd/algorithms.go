package sshfwd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// An algorithmList is one of the lists that are proposed in a key exchange (RFC 4253, 7.1).
type algorithmList struct {
	option  string // ssh_config(5)
	what    string // how x/crypto names it when nothing in it is the server's, too
	want    []string
	ours    []string // those of want that x/crypto has, in the same order
	known   []string // what x/crypto has and does not call insecure
	lacking bool     // there must be one of ours, and there is none
}

// algorithmLists are the user's lists, or the defaults, as far as x/crypto has them.
func algorithmLists(c *config.Config) (kex, ciphers, macs, hostKeys algorithmList) {
	secure, insecure := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	// x/crypto has this name too. It also proposes it wherever curve25519-sha256 is
	// proposed, which is the same exchange (RFC 8731).
	secure.KeyExchanges = append(secure.KeyExchanges, "curve25519-sha256@libssh.org")
	make := func(option, what string, want, secure, insecure []string) algorithmList {
		if want == nil {
			want = config.DefaultAlgorithms(strings.ToLower(option))
		}
		l := algorithmList{option: option, what: what, want: want, known: secure}
		for _, name := range want {
			if slices.Contains(secure, name) || slices.Contains(insecure, name) {
				l.ours = append(l.ours, name)
			}
		}
		l.lacking = len(l.ours) == 0
		return l
	}
	kex = make("KexAlgorithms", "key exchange", c.KexAlgorithms, secure.KeyExchanges, insecure.KeyExchanges)
	ciphers = make("Ciphers", "cipher", c.Ciphers, secure.Ciphers, insecure.Ciphers)
	macs = make("MACs", "MAC", c.MACs, secure.MACs, insecure.MACs)
	hostKeys = make("HostKeyAlgorithms", "host key", c.HostKeyAlgorithms, secure.HostKeys, insecure.HostKeys)
	if macs.lacking {
		// A cipher that authenticates by itself needs no MAC; the others are of no use then.
		alone := slices.DeleteFunc(slices.Clone(ciphers.ours), needsMAC)
		macs.lacking = len(alone) == 0
		if !macs.lacking {
			ciphers.ours = alone
		}
	}
	return kex, ciphers, macs, hostKeys
}

// advisable are those that the configuration allows and x/crypto does not call insecure, or
// all such if the configuration allows none.
func (l *algorithmList) advisable() []string {
	var names []string
	for _, name := range l.ours {
		if slices.Contains(l.known, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return l.known
	}
	return names
}

// isGood reports whether OpenSSH takes an algorithm by default, and x/crypto has it and does
// not call it insecure.
func (l *algorithmList) isGood(name string) bool {
	return slices.Contains(l.known, name) && slices.Contains(config.DefaultAlgorithms(strings.ToLower(l.option)), name)
}

// needsMAC reports whether a cipher does not authenticate what it encrypts (cipher.c in
// OpenSSH).
func needsMAC(cipher string) bool {
	return cipher != ssh.CipherChaCha20Poly1305 && cipher != ssh.CipherAES128GCM && cipher != ssh.CipherAES256GCM
}

// Lacking names the options of ssh_config(5) in which the configuration leaves nothing that
// a Client has, though ssh may: with one of them Dial fails, with any server.
func Lacking(c *config.Config) []string {
	var names []string
	kex, ciphers, macs, hostKeys := algorithmLists(c)
	for _, l := range []algorithmList{kex, ciphers, macs, hostKeys} {
		if l.lacking {
			names = append(names, l.option)
		}
	}
	return names
}

// propose sets the algorithms that are proposed to the server, in the user's order of
// preference. Errors are *config.Error.
func propose(client *ssh.ClientConfig, c *config.Config) error {
	kex, ciphers, macs, hostKeys := algorithmLists(c)
	for _, l := range []algorithmList{kex, ciphers, macs, hostKeys} {
		if l.lacking {
			return &config.Error{
				Problem: fmt.Sprintf("gpg-bridge has none of the %s in the configuration (%s)", l.option, strings.Join(l.want, ",")),
				Advice:  "add one of those that it has, for this host: " + strings.Join(l.known, ", "),
			}
		}
	}
	client.KeyExchanges, client.Ciphers, client.MACs, client.HostKeyAlgorithms = kex.ours, ciphers.ours, macs.ours, hostKeys.ours
	if len(macs.ours) == 0 {
		// For x/crypto an empty list means its own default, while names that it does not
		// know become an empty list.
		client.MACs = macs.want
	}
	return nil
}

// An AlgorithmError says that for one purpose the server takes no algorithm that we have.
type AlgorithmError struct {
	Option  string   // of ssh_config(5): KexAlgorithms, Ciphers, MACs or HostKeyAlgorithms
	Offered []string // by the server
	Better  []string // what the server should have: none that is insecure
	// Allowed is what the configuration allows, if that is the cause: then the server has all
	// of Better, which OpenSSH takes by default.
	Allowed []string
	// Lacking are those that the server offers and the configuration allows, but that we do
	// not have (or the MACs for such ciphers). With one of them the user's own ssh connects.
	Lacking []string
}

// algorithmError makes an *AlgorithmError of what x/crypto says, or returns err.
func algorithmError(c *config.Config, err error) error {
	var none *ssh.AlgorithmNegotiationError
	if !errors.As(err, &none) {
		return err
	}
	kex, ciphers, macs, hostKeys := algorithmLists(c)
	for _, l := range []algorithmList{kex, ciphers, macs, hostKeys} {
		if !strings.HasSuffix(none.What, l.what) {
			continue
		}
		var good []string
		e := &AlgorithmError{Option: l.option, Better: l.advisable()}
		for _, name := range none.RequestedAlgorithms {
			if name == "ext-info-s" || strings.HasPrefix(name, "kex-strict-") { // no algorithms
				continue
			}
			e.Offered = append(e.Offered, name)
			if slices.Contains(l.want, name) {
				e.Lacking = append(e.Lacking, name)
			}
			if l.isGood(name) && !slices.Contains(l.want, name) {
				good = append(good, name)
			}
		}
		if len(e.Lacking) == 0 && len(good) > 0 {
			e.Allowed, e.Better = l.want, good
		}
		if l.option == ciphers.option && len(macs.ours) == 0 && len(e.Lacking) > 0 {
			e.Lacking = macs.want // we have the cipher, but no MAC for it
		}
		return e
	}
	return err
}

// kind is ssh's name for what the option lists (kex_choose_conf in kex.c).
func (e *AlgorithmError) kind() string {
	switch e.Option {
	case "KexAlgorithms":
		return "key exchange method"
	case "HostKeyAlgorithms":
		return "host key type"
	case "MACs":
		return "MAC"
	}
	return "cipher"
}

func (e *AlgorithmError) Error() string {
	return fmt.Sprintf("no algorithm in common for %s: the server has %s", e.Option, strings.Join(e.Offered, ", "))
}

// Hint says what to do.
func (e *AlgorithmError) Hint() string {
	if len(e.Lacking) > 0 {
		return fmt.Sprintf("gpg-bridge has no %s, with which ssh connects; the server should also have one of %s",
			strings.Join(e.Lacking, ", "), strings.Join(e.Better, ", "))
	}
	if len(e.Allowed) > 0 {
		return fmt.Sprintf("ssh does not connect either: your %s allows only %s, and the server has %s",
			e.where(), strings.Join(e.Allowed, ", "), strings.Join(e.Better, ", "))
	}
	return fmt.Sprintf("ssh does not connect either: the server should have one of %s (%s in its sshd_config, or a newer sshd)",
		strings.Join(e.Better, ", "), e.Option)
}

// where are the ways to set the list (ssh(1)).
func (e *AlgorithmError) where() string {
	switch e.Option {
	case "Ciphers":
		return "-c or Ciphers"
	case "MACs":
		return "-m or MACs"
	}
	return e.Option
}
