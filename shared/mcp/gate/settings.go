package gate

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"gateway/shared/mcp"
)

// Limits of what clients set in sessions that the gateway keeps itself.
const (
	maxSettingsOf = 1000   // sessions of one workspace
	maxSettings   = 20_000 // sessions of one process
)

// settings are what clients with sessions set for servers without sessions, which are told
// with each request: the level of log messages, and the resources to watch. They are kept in
// the process that received them.
type settings struct {
	mu sync.Mutex
	of map[settingsKey]*setting
}

type settingsKey struct{ scope, session string }

// setting is that of one session.
type setting struct {
	level   string
	uris    []string
	changed chan struct{} // closed when uris changes
	expires int64         // Unix seconds
}

// change changes the setting of a session; false if there are too many sessions.
func (s *settings) change(k settingsKey, expires int64, now time.Time, do func(*setting)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.of[k]
	if at == nil {
		own := 0
		for other, o := range s.of {
			if o.expires < now.Unix() {
				delete(s.of, other)
			} else if other.scope == k.scope {
				own++
			}
		}
		if own >= maxSettingsOf || len(s.of) >= maxSettings {
			return false
		}
		if s.of == nil {
			s.of = map[settingsKey]*setting{}
		}
		at = &setting{changed: make(chan struct{}), expires: expires}
		s.of[k] = at
	}
	do(at)
	return true
}

// level returns the level of log messages that a client wants; "": none was set.
func (s *settings) level(k settingsKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.of[k]; at != nil {
		return at.level
	}
	return ""
}

// watched returns the resources that a client watches, and a channel that is closed when
// they change.
func (s *settings) watched(k settingsKey, expires int64, now time.Time) (uris []string, changed <-chan struct{}) {
	s.change(k, expires, now, func(at *setting) { uris, changed = at.uris, at.changed })
	return uris, changed
}

// watch adds or removes a resource; false if there would be too many.
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

// levels are those of log messages.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// sessionKey identifies the session that the request names.
func sessionKey(v *visit) settingsKey {
	return settingsKey{v.call.Caller.Scope.Org + "/" + v.call.Caller.Scope.Workspace, v.call.Request.Header.Get(mcp.HeaderSession)}
}

// set answers logging/setLevel, resources/subscribe and resources/unsubscribe of a client
// with a session at a server without.
func set(v *visit, w *way) error {
	about, ok := capabilityOf(v)
	if noted(v, about.Key); ok && !may(v, about) {
		wrong(v, unknown(v, about))
		return nil
	}
	level := v.req.Text("level")
	if v.req.Method == "logging/setLevel" {
		ok = slices.Contains(levels, level)
	}
	if !ok {
		wrong(v, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params must have a uri, or a level: debug, info, notice, warning, error, critical, alert or emergency"})
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
		wrong(v, &mcp.Error{Code: mcp.CodeInternal, Message: "too many resources are watched, or too many sessions have settings"})
		return nil
	}
	sendResult(v, json.RawMessage("{}"))
	return nil
}

// readable returns those resources that the caller may read.
func readable(v *visit, uris []string) (out []string) {
	for _, uri := range uris {
		if reads(v, uri) {
			out = append(out, uri)
		}
	}
	return out
}
