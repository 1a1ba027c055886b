package live

import (
	"encoding/json"
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// Taken is a maker of connections that has the client's side already.
type Taken struct {
	session.Maker
	Near  session.Conn
	Begun bool // the client's side was taken
}

// Accept implements session.Maker.
func (t *Taken) Accept(http.ResponseWriter, *http.Request, string, http.Header) (session.Conn, error) {
	t.Begun = true
	return t.Near, nil
}

// MaxRefusal bounds what is read of the answer to a session that was not opened, in bytes.
const MaxRefusal = 64 << 10

// Refused is what such an answer says; nil where it is no refusal.
func Refused(status int, body []byte) *fault.Fault {
	if status < 300 {
		return nil
	}
	var told struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &told) != nil || told.Error.Message == "" {
		told.Error.Message = "The session could not be opened: the provider refused it"
	}
	code := fault.Code(told.Error.Code)
	if code == "" {
		code = fault.ProviderError
	}
	f := fault.New(code, told.Error.Param, told.Error.Message)
	f.StatusCode = status
	return f
}
