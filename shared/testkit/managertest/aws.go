package managertest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"testing"
	"time"
)

// AWS is Secrets Manager and the token service. Each request must be signed by the
// documented rules of Signature Version 4.
type AWS struct {
	Server
	Region  string
	Keys    map[string]string // access key id -> secret
	Session map[string]string // access key id -> session token
	Role    string            // role that may be assumed
	Ext     string            // its external id
	Secrets map[string]string // SecretString by name; with the prefix "binary:" base64 of SecretBinary
	Fault   string            // __type of every response, with status 400
	made    int
}

// NewAWS starts one.
func NewAWS(t testing.TB, now func() time.Time) *AWS {
	a := &AWS{Region: "eu-west-1", Keys: map[string]string{}, Session: map[string]string{}, Secrets: map[string]string{}}
	a.start(t, now, a.serve)
	return a
}

func (a *AWS) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		a.assume(w, r, string(body))
		return
	}
	refuse := func(status int, kind string) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		reply(w, status, map[string]string{"__type": kind, "Message": "the message may quote what was asked"})
	}
	if why := a.signed(r, body, "secretsmanager"); why != "" {
		a.t.Logf("signature: %s", why)
		refuse(400, "com.amazonaws.secretsmanager#"+why)
		return
	}
	var in struct{ SecretId, VersionId, VersionStage string }
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if r.Method != "POST" || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" || dec.Decode(&in) != nil {
		refuse(400, "InvalidRequestException")
		return
	}
	a.calls["read"]++
	value, there := a.Secrets[in.SecretId]
	encoded, binary := strings.CutPrefix(value, "binary:")
	switch {
	case a.Fault != "":
		refuse(400, a.Fault)
	case a.raw != "":
		reply(w, 200, a.raw)
	case !there:
		refuse(400, "ResourceNotFoundException")
	case binary:
		reply(w, 200, map[string]any{"Name": in.SecretId, "SecretBinary": encoded})
	default:
		reply(w, 200, map[string]any{"ARN": "arn:aws:secretsmanager:" + a.Region + ":123456789012:secret:" + in.SecretId, "Name": in.SecretId, "SecretString": value, "VersionId": "v", "VersionStages": []string{"AWSCURRENT"}, "CreatedDate": 1.7e9})
	}
}

// assume gives a session of the role.
func (a *AWS) assume(w http.ResponseWriter, r *http.Request, body string) {
	a.calls["role"]++
	refuse := func(code string) {
		reply(w, 403, "<ErrorResponse><Error><Code>"+code+"</Code></Error></ErrorResponse>")
	}
	if why := a.signed(r, []byte(body), "sts"); why != "" {
		refuse("SignatureDoesNotMatch")
		return
	}
	form, err := parse(body)
	if err != nil || form["Action"] != "AssumeRole" || form["RoleArn"] != a.Role || form["ExternalId"] != a.Ext {
		refuse("AccessDenied")
		return
	}
	a.made++
	id := fmt.Sprintf("ASIAMADE%d", a.made)
	a.Keys[id], a.Session[id] = "made-secret", "made-session"
	reply(w, 200, "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>"+id+"</AccessKeyId><SecretAccessKey>made-secret</SecretAccessKey><SessionToken>made-session</SessionToken><Expiration>"+
		a.now().Add(time.Hour).UTC().Format(time.RFC3339)+"</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>")
}

// signed computes the signature and compares it; "" when it is right.
func (a *AWS) signed(r *http.Request, body []byte, service string) string {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	parts := map[string]string{}
	for _, p := range strings.Split(auth, ", ") {
		name, v, _ := strings.Cut(p, "=")
		parts[name] = v
	}
	id, scope, _ := strings.Cut(parts["Credential"], "/")
	secret, known := a.Keys[id]
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	switch {
	case !ok || !known:
		return "UnrecognizedClientException"
	case r.Header.Get("X-Amz-Security-Token") != a.Session[id]:
		return "InvalidClientTokenId"
	case err != nil || a.now().Sub(at).Abs() > 5*time.Minute:
		return "RequestExpired"
	case scope != at.Format("20060102")+"/"+a.Region+"/"+service+"/aws4_request":
		return "InvalidSignatureException"
	}
	names := strings.Split(parts["SignedHeaders"], ";")
	if !sort.StringsAreSorted(names) || !strings.Contains(";"+parts["SignedHeaders"]+";", ";host;") || !strings.Contains(";"+parts["SignedHeaders"]+";", ";x-amz-date;") {
		return "IncompleteSignature"
	}
	var headers strings.Builder
	for _, n := range names {
		v := r.Header.Get(n)
		switch n {
		case "host":
			v = r.Host
		case "content-length":
			v = fmt.Sprint(len(body))
		}
		headers.WriteString(n + ":" + strings.TrimSpace(v) + "\n")
	}
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), parts["SignedHeaders"], sum(body)}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", date, scope, sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(strings.Split(scope, "/"), toSign) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	if hex.EncodeToString(key) != parts["Signature"] {
		return "InvalidSignatureException"
	}
	return ""
}

// parse reads a form in which no member may come twice.
func parse(body string) (map[string]string, error) {
	v, err := url.ParseQuery(body)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(v))
	for name := range v {
		out[name] = v.Get(name)
	}
	return out, nil
}
