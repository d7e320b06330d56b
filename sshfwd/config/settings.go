package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Settings are ssh_config keywords, lower case, with their values in order, as ssh -G
// prints them.
type Settings map[string][]string

// parseSettings reads the output of ssh -G: a keyword, a space and the value on
// each line (dump_client_config in OpenSSH's readconf.c).
func parseSettings(out []byte) Settings {
	s := Settings{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if key != "" {
			key = strings.ToLower(key)
			s[key] = append(s[key], value)
		}
	}
	return s
}

func (s Settings) get(key string) string {
	if len(s[key]) == 0 {
		return ""
	}
	return s[key][0]
}

// Text is the first value of a keyword, "" if there is none, or ssh's "none".
func (s Settings) Text(key string) string {
	if v := s.get(key); !strings.EqualFold(v, "none") {
		return v
	}
	return ""
}

// On reports whether a flag is set: yes or true, in ssh -G's two notations. If its value is
// none of a flag's, it returns fallback.
func (s Settings) On(key string, fallback bool) bool {
	switch strings.ToLower(s.get(key)) {
	case "yes", "true":
		return true
	case "no", "false":
		return false
	}
	return fallback
}

func (s Settings) list(key string) []string { return splitCommas(s.get(key)) }

func splitCommas(v string) []string {
	if v == "" {
		return nil
	}
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' })
}

// number reads a count or a number of seconds, 0 for "none". What is no number
// is an error: to go on without a limit that the user set is not for us. So is
// more than ssh takes (convtime in OpenSSH's misc.c), which is also more than fits
// into a time.Duration.
func (s Settings) number(key string, fallback int) (int, error) {
	v := s.get(key)
	switch strings.ToLower(v) {
	case "":
		return fallback, nil
	case "none":
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, &Error{
			Problem: fmt.Sprintf("bad number %q for %s", v, key),
			Advice:  "correct it in ssh_config or on the command line",
		}
	}
	return n, nil
}
