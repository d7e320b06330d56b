package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// maxIncludeDepth is the library's limit, and less than ssh's 16.
const maxIncludeDepth = 5

func readConfigFiles(file string) ([]*ssh_config.Config, error) {
	if file != "" {
		if strings.EqualFold(file, "none") || file == os.DevNull {
			return nil, nil
		}
		c, err := readConfigFile(file)
		return []*ssh_config.Config{c}, err
	}
	home, err := homeDir()
	if err != nil {
		return nil, &Error{Problem: "no home directory", Advice: "name the configuration with -F", Err: err}
	}
	var files []*ssh_config.Config
	for _, path := range []string{filepath.Join(home, ".ssh", "config"), filepath.Join(systemConfigDir(), "ssh_config")} {
		c, err := readConfigFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, c)
	}
	return files, nil
}

func readConfigFile(path string) (*ssh_config.Config, error) {
	advice := "install OpenSSH's client, which reads all of ssh_config, or name a simpler file with -F"
	data, err := readRegularFile(path)
	if err != nil {
		return nil, &Error{Problem: fmt.Sprintf("cannot read %q", path), Advice: advice, Err: err}
	}
	var c *ssh_config.Config
	if err = refuseMatch(data, 0); err == nil {
		c, err = ssh_config.DecodeBytes(data)
	}
	if err != nil {
		return nil, &Error{Problem: fmt.Sprintf("cannot understand %q without ssh", path), Advice: advice, Err: err}
	}
	return c, nil
}

// refuseMatch returns an error if a Match, here or in an included file, would be read
// differently by the library than by ssh: it compares `Match host` with the name as typed.
func refuseMatch(data []byte, depth int) error {
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) < 2 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "match":
			if len(words) > 2 || !strings.EqualFold(words[1], "all") {
				return fmt.Errorf("unsupported %q", strings.TrimSpace(line))
			}
		case "include":
			if err := refuseMatchIn(words[1:], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseMatchIn is refuseMatch for the files that an Include names. A relative path is
// one in ~/.ssh.
func refuseMatchIn(patterns []string, depth int) error {
	if depth > maxIncludeDepth {
		return errors.New("too many levels of Include")
	}
	home, err := homeDir()
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		pattern, err := ExpandTilde(strings.Trim(pattern, `"`))
		if err != nil {
			return err
		}
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(home, ".ssh", pattern)
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := readRegularFile(file)
			if err != nil {
				return err
			}
			if err := refuseMatch(data, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
