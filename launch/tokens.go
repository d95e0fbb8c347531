package launch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Tokens is either the word "generate" or a list of who may come in.
type Tokens struct {
	Generate bool
	List     []Token
}

// Token is one principal. Hash is "sha256:" and the hex digest of the token; the token itself stands nowhere.
type Token struct {
	Name string `yaml:"name"`
	Role string `yaml:"role"` // watcher, driver, operator
	Hash string `yaml:"hash"`
}

// UnmarshalYAML reads the word or the list.
func (t *Tokens) UnmarshalYAML(n ast.Node) error {
	if s, ok := n.(*ast.StringNode); ok {
		if s.Value != "generate" {
			return at(n, fmt.Sprintf("%q: write the word generate, or a list of {name, role, hash} as `viad token` prints it", s.Value))
		}
		*t = Tokens{Generate: true}
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return at(n, "write the word generate, or a list of {name, role, hash} as `viad token` prints it")
	}
	t.Generate, t.List = false, nil
	for _, v := range seq.Values {
		var one Token
		if err := shaped(v, reflect.TypeFor[Token]()); err != nil {
			return err
		}
		if err := yaml.NodeToValue(v, &one, yaml.Strict()); err != nil {
			return err
		}
		t.List = append(t.List, one)
	}
	return nil
}

const hashPrefix = "sha256:"

// NewToken makes a token of 256 random bits and its hash as the launch file wants it.
func NewToken() (token, hash string, err error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", "", err
	}
	token = "viad_" + base64.RawURLEncoding.EncodeToString(b)
	return token, HashToken(token), nil
}

// HashToken is the hash of a token as the launch file wants it.
func HashToken(token string) string {
	h := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(h[:])
}

// digest is the 32 bytes that a hash in the launch file stands for.
func digest(hash string) ([sha256.Size]byte, error) {
	var d [sha256.Size]byte
	text, ok := strings.CutPrefix(hash, hashPrefix)
	if !ok {
		return d, errors.New("it must be sha256: and 64 hex digits, as `viad token` prints it")
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(d) {
		return d, errors.New("after sha256: there must be 64 hex digits, as `viad token` prints them")
	}
	copy(d[:], b)
	return d, nil
}

// development is the generated token of a state folder: made once, kept in a file that only its owner reads.
func development(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		t := strings.TrimSpace(string(b))
		if len(t) >= 32 && len(t) <= 256 && !strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return t, nil
		}
		return "", fmt.Errorf("%s holds no token; remove it, and a new one is made", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read the development token: %w", err)
	}
	token, _, err := NewToken()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("cannot keep the development token: %w", err)
	}
	return token, nil
}
