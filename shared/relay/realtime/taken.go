package realtime

import (
	"encoding/json"
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// TakenConn is a session.Maker that already has the client's side.
type TakenConn struct {
	session.Maker
	Near  session.Conn
	Begun bool // the client's side was accepted
}

// Accept implements session.Maker.
func (t *TakenConn) Accept(http.ResponseWriter, *http.Request, string, http.Header) (session.Conn, error) {
	t.Begun = true
	return t.Near, nil
}

// MaxRefusal limits the bytes read of a failed upgrade's response.
const MaxRefusal = 64 << 10

// LiveRefusal returns the fault of such a response; nil if it is not an error.
func LiveRefusal(status int, body []byte) *fault.Fault {
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
