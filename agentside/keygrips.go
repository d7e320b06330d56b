package agentside

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

var keygripForm = regexp.MustCompile(`^[0-9A-F]{40}$`)

// Keygrips returns the keygrips of all keys with a secret part, primary keys and
// subkeys, stubs for smart cards included: 40 upper-case hex digits each.
func (k Keyring) Keygrips(ctx context.Context) ([]string, error) {
	out, err := k.gpg(ctx, "--with-colons", "--with-keygrip", "--no-auto-check-trustdb", "--list-secret-keys")
	if err != nil {
		return nil, fmt.Errorf("list the secret keys: %w", err)
	}
	return parseKeygrips(string(out)), nil
}

// parseKeygrips takes the grp records (GnuPG, doc/DETAILS: field 10). A key of
// two algorithms has two keygrips, separated by a comma (GnuPG 2.5).
func parseKeygrips(listing string) []string {
	var grips []string
	seen := map[string]bool{}
	for line := range strings.Lines(listing) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if fields[0] != "grp" || len(fields) < 10 {
			continue
		}
		for grip := range strings.SplitSeq(fields[9], ",") {
			if keygripForm.MatchString(grip) && !seen[grip] {
				grips = append(grips, grip)
			}
			seen[grip] = true
		}
	}
	return grips
}
