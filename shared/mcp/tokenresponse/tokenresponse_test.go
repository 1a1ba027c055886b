package tokenresponse

import (
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const asJSON, asForm = "application/json", "application/x-www-form-urlencoded; charset=utf-8"
	for name, c := range map[string]struct {
		media, body string
		want        Response
		unreadable  bool
	}{
		"usual":                   {asJSON, `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}`, Response{Access: "a", Refresh: "r", Expires: time.Hour}, false},
		"no expires_in":           {asJSON, `{"access_token":"a","token_type":"bearer"}`, Response{Access: "a"}, false},
		"expires_in 0":            {asJSON, `{"access_token":"a","token_type":"bearer","expires_in":0}`, Response{Access: "a"}, false},
		"expires_in null":         {asJSON, `{"access_token":"a","token_type":"bearer","expires_in":null}`, Response{Access: "a"}, false},
		"expires_in as text":      {asJSON, `{"access_token":"a","token_type":"Bearer","expires_in":"3599"}`, Response{Access: "a", Expires: 3599 * time.Second}, false},
		"expires_in beyond bound": {asJSON, `{"access_token":"a","expires_in":1e30}`, Response{Access: "a", Expires: maxExpires}, false},
		"expires_in of words":     {asJSON, `{"access_token":"a","expires_in":"soon"}`, Response{}, true},
		"expires_in NaN":          {asJSON, `{"access_token":"a","expires_in":"NaN"}`, Response{}, true},
		"no token_type":           {asJSON, `{"access_token":"a","expires_in":60}`, Response{Access: "a", Expires: time.Minute}, false},
		"another token_type":      {asJSON, `{"access_token":"a","token_type":"mac"}`, Response{}, true},
		"no content type":         {"", `{"access_token":"a"}`, Response{Access: "a"}, false},
		"form":                    {asForm, `access_token=a&scope=repo%2Cgist&token_type=bearer`, Response{Access: "a"}, false},
		"form that expires":       {asForm, `access_token=a&expires_in=28800&refresh_token=r&token_type=bearer`, Response{Access: "a", Refresh: "r", Expires: 8 * time.Hour}, false},
		"form given twice":        {asForm, `access_token=a&access_token=b`, Response{}, true},
		"form error":              {asForm, `error=bad_refresh_token&error_description=x`, Response{Error: "bad_refresh_token"}, false},
		"error":                   {asJSON, `{"error":"invalid_grant","error_description":"x"}`, Response{Error: "invalid_grant"}, false},
		"members twice":           {asJSON, `{"access_token":"a","access_token":"b"}`, Response{}, true},
		"token of another type":   {asJSON, `{"access_token":1}`, Response{}, true},
		"token with a line break": {asJSON, `{"access_token":"a\nb"}`, Response{}, true},
		"empty object":            {asJSON, `{}`, Response{}, true},
		"page":                    {"text/html", `<html>`, Response{}, true},
		"nothing":                 {asJSON, ``, Response{}, true},
	} {
		got, err := Read(c.media, []byte(c.body))
		if got != c.want || (err != nil) != c.unreadable {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestEndsGrant(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"invalid_grant": true, "bad_refresh_token": true, "invalid_client": false, "temporarily_unavailable": false, "invalid_scope": false, "": false} {
		if EndsGrant(code) != want {
			t.Errorf("%q: %t", code, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("application/json", []byte(`{"access_token":"a","expires_in":"1"}`))
	f.Add("application/x-www-form-urlencoded", []byte(`access_token=a`))
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		r, err := Read(media, body)
		if err == nil && (r.Access == "") == (r.Error == "") {
			t.Errorf("%+v: want a token or an error", r)
		}
	})
}
