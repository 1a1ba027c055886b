package mockprovider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sort"
	"strings"
	"time"
)

// Credentials that are valid here. The session is the one that AssumeRole returns.
const (
	bedrockKey           = "AKIDMOCK"
	bedrockSecret        = "mock-secret"
	bedrockSessionKey    = "ASIAMOCK"
	bedrockSessionSecret = "mock-session-secret"
	bedrockSessionToken  = "mock-session-token"
)

func awsRejection(kind, message string) *apiError {
	return &apiError{status: http.StatusForbidden, typ: kind, message: message}
}

// awsAuthenticate checks a version 4 signature against the request as it arrived, or a
// bearer key.
func awsAuthenticate(x *exchange) *apiError {
	auth := x.r.Header.Get("Authorization")
	if strings.HasPrefix(auth, "Bearer ") {
		if e := x.authenticate(); e != nil {
			kind := map[int]string{429: "ThrottlingException", 500: "InternalServerException", 403: "AccessDeniedException"}[e.status]
			if kind == "" {
				return awsRejection("UnrecognizedClientException", "The security token included in the request is invalid.")
			}
			return &apiError{status: e.status, typ: kind, message: e.message, retryAfter: e.retryAfter}
		}
		return nil
	}
	rest, ok := strings.CutPrefix(auth, "AWS4-HMAC-SHA256 ")
	if !ok {
		return awsRejection("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, val, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = val
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return awsRejection("IncompleteSignatureException", "Credential must have exactly 5 slash-delimited elements")
	}
	secret := ""
	switch scope[0] {
	case bedrockKey:
		secret = bedrockSecret
	case bedrockSessionKey:
		if secret = bedrockSessionSecret; x.r.Header.Get("X-Amz-Security-Token") != bedrockSessionToken {
			return awsRejection("ExpiredTokenException", "The security token included in the request is expired")
		}
	default:
		return awsRejection("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	if want := awsService(x); scope[3] != want {
		return awsRejection("InvalidSignatureException", "Credential should be scoped to correct service: '"+want+"'.")
	}
	date := x.r.Header.Get("X-Amz-Date")
	if at, err := time.Parse("20060102T150405Z", date); err != nil || at.Sub(x.s.opts.Now()).Abs() > 15*time.Minute || !strings.HasPrefix(date, scope[1]) {
		return awsRejection("InvalidSignatureException", "Signature expired: "+date+" is not within 15 minutes")
	}
	if !hmac.Equal([]byte(fields["Signature"]), []byte(awsSignature(x, secret, fields["SignedHeaders"], date, scope[1:]))) {
		return awsRejection("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

// awsService is the service name for which a request must be signed.
func awsService(x *exchange) string {
	switch path := bedrockPath(x.path); {
	case path == "/sts/" || path == "/": // AWS itself uses the path "/"
		return "sts"
	case strings.HasPrefix(path, mockBucket):
		return "s3"
	}
	return "bedrock"
}

// awsSignature computes the expected signature. Except for S3, the path is escaped once
// more than it arrived.
func awsSignature(x *exchange, secret, signed, date string, scope []string) string {
	var path strings.Builder
	for i := range len(x.path) {
		c := x.path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 || scope[2] == "s3" {
			path.WriteByte(c)
		} else {
			path.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	params := strings.Split(x.query, "&")
	for i, p := range params {
		if p != "" && !strings.Contains(p, "=") {
			params[i] = p + "="
		}
	}
	sort.Strings(params)
	var headers strings.Builder
	for name := range strings.SplitSeq(signed, ";") {
		val := strings.Join(x.r.Header.Values(name), ",")
		switch name {
		case "host":
			val = x.r.Host
		case "content-length":
			val = x.r.Header.Get("Content-Length")
			if val == "" {
				val = itoa(x.r.ContentLength)
			}
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(val), " ") + "\n")
	}
	sum := func(b []byte) string {
		h := sha256.Sum256(b)
		return hex.EncodeToString(h[:])
	}
	canonical := strings.Join([]string{x.r.Method, path.String(), strings.Join(params, "&"), headers.String(), signed, sum(x.body)}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", date, strings.Join(scope, "/"), sum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range append(append([]string{}, scope...), toSign) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}
