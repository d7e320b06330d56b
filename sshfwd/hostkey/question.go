package hostkey

import (
	"context"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
)

// ask asks in ssh's words. The fingerprint, typed or pasted, is as good as a yes.
func (p *Policy) ask(remote net.Addr, key ssh.PublicKey) (bool, error) {
	art := ""
	if p.config.VisualHostKey {
		art = randomArt(key, p.config.FingerprintHash) + "\n"
	}
	text := fmt.Sprintf("The authenticity of host '%s (%s)' can't be established.\n%s key fingerprint is %s.\n%s%s\n"+
		"Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
		usertext.Line(p.known.name), p.addressOf(remote), keyTypeName(key), p.fingerprint(key), art, p.otherNames(key))
	return p.confirm(text, p.fingerprint(key))
}

// confirm asks until the answer is yes, the fingerprint, or no (confirm in
// sshconnect.c). Without a fingerprint only yes or no will do.
func (p *Policy) confirm(text, fingerprint string) (bool, error) {
	again := "Please type 'yes' or 'no': "
	if fingerprint != "" {
		again = "Please type 'yes', 'no' or the fingerprint: "
	}
	for {
		answer, err := p.prompter.Ask(p.ctx, text)
		if err != nil {
			return false, err
		}
		switch answer = strings.TrimSpace(answer); {
		case strings.EqualFold(answer, "yes") || answer != "" && answer == fingerprint:
			return true, nil
		case answer == "" || strings.EqualFold(answer, "no"):
			return false, nil
		}
		text = again
	}
}

// otherNames says where else the key is known, as ssh does.
func (p *Policy) otherNames(key ssh.PublicKey) string {
	var others []string
	for _, l := range p.lines {
		if k, ok := parseKnownKey(l.key); ok && l.marker == markerNone && Same(k, key) {
			names := l.names
			if strings.HasPrefix(names, "|") {
				names = "[hashed name]"
			}
			others = append(others, fmt.Sprintf("    %s:%d: %s", l.file, l.number, usertext.Line(names)))
		}
	}
	if len(others) == 0 {
		return "This key is not known by any other names."
	}
	return "This host key is known by the following other names/addresses:\n" + strings.Join(others, "\n")
}

// Confirm asks the user about the update, in ssh's words (update_known_hosts in
// clientloop.c).
func (u *Update) Confirm(ctx context.Context, asker usertext.Asker) bool {
	text := "The server has updated its host keys.\nThese changes were verified by the server's existing trusted key.\n"
	for _, key := range u.Learned() {
		text += "Learned new hostkey: " + key + "\n"
	}
	for _, key := range u.Obsolete() {
		text += "Deprecating obsolete hostkey: " + key + "\n"
	}
	asker.Notice(usertext.Info, text)
	for range 3 {
		answer, err := asker.Ask(ctx, "Accept updated hostkeys? (yes/no): ")
		switch {
		case err != nil || strings.EqualFold(answer, "no"):
			return false
		case strings.EqualFold(answer, "yes"):
			return true
		}
		asker.Notice(usertext.Info, "Please enter \"yes\" or \"no\"")
	}
	return false
}
