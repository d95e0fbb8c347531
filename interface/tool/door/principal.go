// Package door is the HTTP entrance: who may come in, from where, and with how much. It knows no MCP
// library; what it guards is any http.Handler.
package door

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// Role is what a principal may do. The zero value may do nothing.
type Role int

// The roles, each with all that the one before it may do.
const (
	Nobody   Role = iota
	Watcher       // look, and stop
	Driver        // stage and execute
	Operator      // arm, re-arm and take over
)

// String is the role as launch files write it.
func (r Role) String() string {
	return [...]string{"nobody", "watcher", "driver", "operator"}[r]
}

// ParseRole reads the role of a launch file.
func ParseRole(s string) (Role, error) {
	for r := Watcher; r <= Operator; r++ {
		if r.String() == s {
			return r, nil
		}
	}
	return Nobody, fmt.Errorf("role %q is none of watcher, driver, operator", s)
}

// Principal is who asks. Seats and repeats go by the name, never by an MCP session.
type Principal struct {
	Name string
	Role Role
}

// Token is a principal and the SHA-256 of its bearer token; the token itself is kept nowhere.
type Token struct {
	Principal
	Hash [sha256.Size]byte
}

// NewToken is a Token for the hex digest of a launch file.
func NewToken(name string, role Role, hexHash string) (Token, error) {
	t := Token{Principal: Principal{name, role}}
	b, err := hex.DecodeString(strings.TrimPrefix(hexHash, "sha256:"))
	if err != nil || len(b) != sha256.Size {
		return t, fmt.Errorf("token %q: hash is not 64 hex digits of a SHA-256", name)
	}
	copy(t.Hash[:], b)
	return t, nil
}

// Hash is the digest that a launch file holds for a token.
func Hash(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// Lookup compares against every token in constant time, whichever matches.
func Lookup(tokens []Token, presented string) (Principal, bool) {
	h := sha256.Sum256([]byte(presented))
	var found Principal
	ok := false
	for i := range tokens {
		if subtle.ConstantTimeCompare(h[:], tokens[i].Hash[:]) == 1 {
			found, ok = tokens[i].Principal, true
		}
	}
	return found, ok
}

type principalKey struct{}

// With puts a principal into a context.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From is the principal of a context.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}
