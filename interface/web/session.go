package web

import (
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"
)

// sessionTime is how long a page may stay open before its link is needed again.
const sessionTime = 24 * time.Hour

// maxSessions bounds memory; the oldest goes when it is reached.
const maxSessions = 256

// sessions are the people who are in, by a random id. They live in memory: after a restart the link with
// the token opens a new one.
type sessions struct {
	mu   sync.Mutex
	byID map[string]session
}

type session struct {
	who   Person
	since time.Time
}

func newSessions() *sessions { return &sessions{byID: map[string]session{}} }

func (s *sessions) open(who Person, now time.Time) (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	id := base64.RawURLEncoding.EncodeToString(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSessions {
		oldest := ""
		for k, v := range s.byID {
			if oldest == "" || v.since.Before(s.byID[oldest].since) {
				oldest = k
			}
		}
		delete(s.byID, oldest)
	}
	s.byID[id] = session{who, now}
	return id, nil
}

func (s *sessions) find(id string, now time.Time) (Person, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.byID[id]
	if ok && now.Sub(v.since) > sessionTime {
		delete(s.byID, id)
		ok = false
	}
	if !ok {
		return Person{}, false
	}
	return v.who, true
}
