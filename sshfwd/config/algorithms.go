package config

import (
	"slices"
	"strings"
)

// CertSuffix is how the name of a certificate's algorithm ends; the name of its key's
// algorithm stands before it (OpenSSH's PROTOCOL.certkeys).
const CertSuffix = "-cert-v01@openssh.com"

// PlainAlgorithm is the algorithm of the signatures made with a certificate's
// key (draft-miller-ssh-cert).
func PlainAlgorithm(algorithm string) string {
	plain, isCert := strings.CutSuffix(algorithm, CertSuffix)
	if isCert && strings.HasPrefix(plain, "sk-") {
		return plain + "@openssh.com"
	}
	return plain
}

// algorithmKeys are the keywords whose values are lists of algorithms.
func algorithmKeys() []string {
	return []string{"hostkeyalgorithms", "casignaturealgorithms", "pubkeyacceptedalgorithms", "kexalgorithms", "ciphers", "macs"}
}

// DefaultAlgorithms returns OpenSSH's own list for a keyword, such as "kexalgorithms", in
// its order, where there is no ssh whose list could be had. It is that of OpenSSH 10.0
// (myproposal.h).
func DefaultAlgorithms(key string) []string { return defaultAlgorithms().list(key) }

func defaultAlgorithms() Settings {
	signatures := "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521," +
		"sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com,rsa-sha2-512,rsa-sha2-256"
	certs := "ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com," +
		"ecdsa-sha2-nistp384-cert-v01@openssh.com,ecdsa-sha2-nistp521-cert-v01@openssh.com," +
		"sk-ssh-ed25519-cert-v01@openssh.com,sk-ecdsa-sha2-nistp256-cert-v01@openssh.com," +
		"rsa-sha2-512-cert-v01@openssh.com,rsa-sha2-256-cert-v01@openssh.com,"
	return Settings{
		"hostkeyalgorithms":        {certs + signatures},
		"casignaturealgorithms":    {signatures},
		"pubkeyacceptedalgorithms": {certs + signatures},
		"kexalgorithms": {"mlkem768x25519-sha256,sntrup761x25519-sha512,sntrup761x25519-sha512@openssh.com," +
			"curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521," +
			"diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256"},
		"ciphers": {"chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"},
		"macs": {"umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com," +
			"hmac-sha1-etm@openssh.com,umac-64@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512,hmac-sha1"},
	}
}

func (c *Config) setAlgorithms(o Options, s, defaults Settings) {
	c.HostKeyAlgorithms = s.list("hostkeyalgorithms")
	c.CASignatureAlgorithms = s.list("casignaturealgorithms")
	c.PubkeyAcceptedAlgorithms = s.list("pubkeyacceptedalgorithms")
	if c.PubkeyAcceptedAlgorithms == nil { // its name before ssh 8.5
		c.PubkeyAcceptedAlgorithms = s.list("pubkeyacceptedkeytypes")
	}
	c.KexAlgorithms, c.Ciphers, c.MACs = s.list("kexalgorithms"), s.list("ciphers"), s.list("macs")
	if slices.Equal(c.KexAlgorithms, defaults.list("kexalgorithms")) {
		c.KexAlgorithms = postQuantum(c.KexAlgorithms)
	}
	line := o.line()
	c.HostKeyAlgorithmsOrdered = hostKeysOrdered(line.Values('o'), c.HostKeyAlgorithms, defaults.list("hostkeyalgorithms"))
}

// mlkem is the post-quantum key exchange that OpenSSH has since 9.9, and golang.org/x/crypto.
const mlkem = "mlkem768x25519-sha256"

// postQuantum returns ssh's own list, of a version between 8.5 and 9.8, with mlkem in front: the
// one with which these begin, sntrup761, is not there, and a host with 9.9 has both. So the key
// exchange with that is post-quantum, as ssh's is. A list that the user has changed is taken as it
// is.
func postQuantum(kex []string) []string {
	if len(kex) == 0 || !strings.HasPrefix(kex[0], "sntrup761") || slices.Contains(kex, mlkem) {
		return kex
	}
	return append([]string{mlkem}, kex...)
}

// hostKeysOrdered reports whether the user has said in which order host key algorithms are
// proposed: by a list in full, or one with "^". If they were only added to the default
// ("+") or taken from it ("-"), those for which a key is known come first (ssh_kex2 in
// OpenSSH's sshconnect2.c). ssh -G prints what has become of the list: only a -o shows how
// it was written, and a list in a file that is in the default's order counts as the
// default with "-".
func hostKeysOrdered(options, list, defaults []string) bool {
	for _, option := range options { // the first one counts, and comes before all files
		if keyword, _, words, err := SplitLine(option); err == nil && keyword == "hostkeyalgorithms" && len(words) > 0 {
			return !strings.HasPrefix(words[0], "+") && !strings.HasPrefix(words[0], "-")
		}
	}
	if len(list) >= len(defaults) && slices.Equal(list[:len(defaults)], defaults) {
		return false
	}
	rest := defaults
	for _, algorithm := range list {
		i := slices.Index(rest, algorithm)
		if i < 0 {
			return true
		}
		rest = rest[i+1:]
	}
	return false
}

// checkLists refuses a list of algorithms that the configuration has emptied:
// it must not pass for one that was never set.
func (s Settings) checkLists() error {
	for _, key := range algorithmKeys() {
		if len(s[key]) > 0 && s[key][0] == "" {
			return &Error{Problem: "the configuration leaves nothing in " + key, Advice: "correct the list in ssh_config"}
		}
	}
	return nil
}
