package gate

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"gateway/shared/mcp"
)

// Limits of session settings.
const (
	maxSettingsOf = 1000   // sessions of one workspace
	maxSettings   = 20_000 // sessions of one process
)

// settings stores what clients with sessions set for stateless servers: the log level and the
// subscribed resources. They are sent with each request and exist only in this process.
type settings struct {
	mu       sync.Mutex
	sessions map[settingsKey]*setting
}

type settingsKey struct{ scope, session string }

// setting is the setting of one session.
type setting struct {
	level   string
	uris    []string
	changed chan struct{} // closed when uris changes
	expires int64         // Unix seconds
}

// change updates the setting of a session. It returns false if there are too many sessions.
func (s *settings) change(k settingsKey, expires int64, now time.Time, do func(*setting)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.sessions[k]
	if at == nil {
		own := 0
		for other, o := range s.sessions {
			if o.expires < now.Unix() {
				delete(s.sessions, other)
			} else if other.scope == k.scope {
				own++
			}
		}
		if own >= maxSettingsOf || len(s.sessions) >= maxSettings {
			return false
		}
		if s.sessions == nil {
			s.sessions = map[settingsKey]*setting{}
		}
		at = &setting{changed: make(chan struct{}), expires: expires}
		s.sessions[k] = at
	}
	do(at)
	return true
}

// level returns the log level of a session, or "".
func (s *settings) level(k settingsKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.sessions[k]; at != nil {
		return at.level
	}
	return ""
}

// watched returns the subscribed resources and a channel that is closed when they change.
func (s *settings) watched(k settingsKey, expires int64, now time.Time) (uris []string, changed <-chan struct{}) {
	s.change(k, expires, now, func(at *setting) { uris, changed = at.uris, at.changed })
	return uris, changed
}

// watch adds or removes a resource. It returns false if there are too many.
func (at *setting) watch(uri string, on bool) bool {
	has := slices.Contains(at.uris, uri)
	switch {
	case has == on:
		return true
	case on && len(at.uris) >= maxSubscriptions:
		return false
	case on:
		at.uris = append(slices.Clip(at.uris), uri)
	default:
		at.uris = slices.DeleteFunc(slices.Clone(at.uris), func(u string) bool { return u == uri })
	}
	close(at.changed)
	at.changed = make(chan struct{})
	return true
}

// levels are the log levels of the protocol.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// sessionKey identifies the session of the request.
func sessionKey(v *requestState) settingsKey {
	return settingsKey{v.call.Caller.Scope.Org + "/" + v.call.Caller.Scope.Workspace, v.call.Request.Header.Get(mcp.HeaderSession)}
}

// set serves logging/setLevel, resources/subscribe and resources/unsubscribe for a client with
// a session and a stateless server.
func set(v *requestState, w *bridge) error {
	about, ok := capabilityOf(v)
	if updateRecord(v, about.Key); ok && !authorize(v, about) {
		sendError(v, unknown(v, about))
		return nil
	}
	level := v.req.Text("level")
	if v.req.Method == "logging/setLevel" {
		ok = slices.Contains(levels, level)
	}
	if !ok {
		sendError(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must have a uri, or a level of debug, info, notice, warning, error, critical, alert or emergency"})
		return nil
	}
	kept := true
	fits := v.host.settings.change(sessionKey(v), w.session.Expires, v.call.Now(), func(at *setting) {
		if about.Type == mcp.Resource {
			kept = at.watch(about.Key, v.req.Method == "resources/subscribe")
			return
		}
		at.level = level
	})
	if !fits || !kept {
		sendError(v, &mcp.Error{Code: mcp.CodeInternal, Message: "too many resource subscriptions or sessions with settings"})
		return nil
	}
	sendResult(v, json.RawMessage("{}"))
	return nil
}

// readable returns the resources that the caller may read.
func readable(v *requestState, uris []string) (out []string) {
	for _, uri := range uris {
		if mayRead(v, uri) {
			out = append(out, uri)
		}
	}
	return out
}
