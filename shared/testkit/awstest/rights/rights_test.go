package rights

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/testkit/awsemulator"
)

const table = "arn:aws:dynamodb:us-east-1:123456789012:table/gateway-"

// TestAllowed holds the evaluation of policies against what IAM documents.
func TestAllowed(t *testing.T) {
	t.Parallel()
	on := func(condition map[string]map[string]awsemulator.List) []awsemulator.Statement {
		return []awsemulator.Statement{{Action: awsemulator.List{"s3:Get*", "s3:ListBucket"}, Resource: awsemulator.List{"arn:aws:s3:::b", "arn:aws:s3:::b/a/*"}, Condition: condition}}
	}
	leading := func(operator string) map[string]map[string]awsemulator.List {
		return map[string]map[string]awsemulator.List{operator: {"k": {"x#*", "y"}}}
	}
	for name, c := range map[string]struct {
		policy  []awsemulator.Statement
		use     Use
		allowed bool
	}{
		"action and resource":       {on(nil), Use{Action: "s3:GetObject", Resource: "arn:aws:s3:::b/a/x/y"}, true},
		"another action":            {on(nil), Use{Action: "s3:PutObject", Resource: "arn:aws:s3:::b/a/x"}, false},
		"another resource":          {on(nil), Use{Action: "s3:GetObject", Resource: "arn:aws:s3:::b/ab"}, false},
		"brackets are themselves":   {on(nil), Use{Action: "s3:GetObject", Resource: "arn:aws:s3:::b/a/[x]"}, true},
		"no policy":                 {nil, Use{Action: "s3:GetObject", Resource: "arn:aws:s3:::b/a/x"}, false},
		"like":                      {on(leading("StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"x#1"}}}, true},
		"not like":                  {on(leading("StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"z"}}}, false},
		"like, absent":              {on(leading("StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", nil}, false},
		"like if it exists":         {on(leading("StringLikeIfExists")), Use{"s3:ListBucket", "arn:aws:s3:::b", nil}, true},
		"like if it exists, it not": {on(leading("StringLikeIfExists")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"z"}}}, false},
		"equal":                     {on(leading("StringEquals")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"y"}}}, true},
		"equal is not like":         {on(leading("StringEquals")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"x#1"}}}, false},
		"all of several":            {on(leading("ForAllValues:StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"x#1", "y"}}}, true},
		"not all of several":        {on(leading("ForAllValues:StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {"x#1", "z"}}}, false},
		"all of none":               {on(leading("ForAllValues:StringLike")), Use{"s3:ListBucket", "arn:aws:s3:::b", nil}, true},
		"must be there":             {on(map[string]map[string]awsemulator.List{"Null": {"k": {"false"}}}), Use{"s3:ListBucket", "arn:aws:s3:::b", nil}, false},
		"is there":                  {on(map[string]map[string]awsemulator.List{"Null": {"k": {"false"}}}), Use{"s3:ListBucket", "arn:aws:s3:::b", map[string][]string{"k": {""}}}, true},
	} {
		by, err := Allowed(c.policy, c.use)
		if err != nil || (len(by) > 0) != c.allowed {
			t.Errorf("%s: %v, %v", name, by, err)
		}
	}
	if _, err := Allowed(on(leading("NumericLessThan")), Use{Action: "s3:ListBucket", Resource: "arn:aws:s3:::b"}); err == nil {
		t.Error("an operator that is not known is no error")
	}
}

// TestUses makes of requests what IAM checks.
func TestUses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ service, target, method, url, body, want string }{
		"get":         {"dynamodb", "GetItem", "POST", "/", `{"TableName":"gateway-keys","Key":{"pk":{"S":"P"},"sk":{"S":"-"}}}`, "dynamodb:GetItem on " + table + "keys map[dynamodb:LeadingKeys:[P]]"},
		"put":         {"dynamodb", "PutItem", "POST", "/", `{"TableName":"gateway-keys","Item":{"pk":{"S":"P"},"n":{"N":"1"}}}`, "dynamodb:PutItem on " + table + "keys map[dynamodb:LeadingKeys:[P]]"},
		"query":       {"dynamodb", "Query", "POST", "/", `{"TableName":"gateway-usage","KeyConditionExpression":"pk = :v1 AND sk > :v2","ExpressionAttributeValues":{":v1":{"S":"P"},":v2":{"S":"Q"}}}`, "dynamodb:Query on " + table + "usage map[dynamodb:LeadingKeys:[P]]"},
		"batch":       {"dynamodb", "BatchWriteItem", "POST", "/", `{"RequestItems":{"gateway-usage":[{"PutRequest":{"Item":{"pk":{"S":"B"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"A"}}}}]}}`, "dynamodb:BatchWriteItem on " + table + "usage map[dynamodb:LeadingKeys:[A B]]"},
		"batch get":   {"dynamodb", "BatchGetItem", "POST", "/", `{"RequestItems":{"gateway-usage":{"Keys":[{"pk":{"S":"A"}},{"pk":{"S":"A"}}]}}}`, "dynamodb:BatchGetItem on " + table + "usage map[dynamodb:LeadingKeys:[A]]"},
		"transaction": {"dynamodb", "TransactWriteItems", "POST", "/", `{"TransactItems":[{"Update":{"TableName":"gateway-spend","Key":{"pk":{"S":"P"}}}}]}`, "dynamodb:UpdateItem on " + table + "spend map[dynamodb:LeadingKeys:[P]]"},
		"test":        {"dynamodb", "TransactWriteItems", "POST", "/", `{"TransactItems":[{"ConditionCheck":{"TableName":"gateway-control","Key":{"pk":{"S":"P"}}}}]}`, "dynamodb:ConditionCheckItem on " + table + "control map[dynamodb:LeadingKeys:[P]]"},
		"send":        {"sqs", "SendMessageBatch", "POST", "/", `{"QueueUrl":"http://127.0.0.1:1/123456789012/gateway-usage"}`, "sqs:SendMessage on arn:aws:sqs:us-east-1:123456789012:gateway-usage map[]"},
		"data key":    {"kms", "GenerateDataKey", "POST", "/", `{"KeyId":"k","EncryptionContext":{"org":"o","purpose":"log"}}`, "kms:GenerateDataKey on key map[kms:EncryptionContext:org:[o] kms:EncryptionContext:purpose:[log] kms:EncryptionContextKeys:[org purpose]]"},
		"object":      {"s3", "", "HEAD", "/b/a/x", "", "s3:GetObject on arn:aws:s3:::b/a/x map[]"},
		"write":       {"s3", "", "PUT", "/b/a/x?x-id=PutObject", "", "s3:PutObject on arn:aws:s3:::b/a/x map[]"},
		"delete":      {"s3", "", "DELETE", "/b/a/x", "", "s3:DeleteObject on arn:aws:s3:::b/a/x map[]"},
		"list":        {"s3", "", "GET", "/b?list-type=2&prefix=held/", "", "s3:ListBucket on arn:aws:s3:::b map[s3:prefix:[held/]]"},
		"list all":    {"s3", "", "GET", "/b?list-type=2", "", "s3:ListBucket on arn:aws:s3:::b map[]"},
		"delete many": {"s3", "", "POST", "/b?delete=", `<Delete><Object><Key>a/x</Key></Object></Delete>`, "s3:DeleteObject on arn:aws:s3:::b/a/x map[]"},
	} {
		r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
		prefix := map[string]string{"dynamodb": "DynamoDB_20120810.", "sqs": "AmazonSQS.", "kms": "TrentService."}[c.service]
		r.Header.Set("X-Amz-Target", prefix+c.target)
		uses, err := Uses(c.service, r, []byte(c.body), "key")
		if err != nil || len(uses) != 1 || uses[0].String() != c.want {
			t.Errorf("%s: %v, %v, want %s", name, uses, err, c.want)
		}
	}
	for _, service := range []string{"dynamodb", "s3", "other"} {
		r := httptest.NewRequest(http.MethodPatch, "/b/x", nil)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810.ExecuteStatement")
		if uses, err := Uses(service, r, nil, "key"); err == nil {
			t.Errorf("%s: %v", service, uses)
		}
	}
}

// TestRecorder rejects what a policy does not allow, and lets others pass.
func TestRecorder(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(behind.Close)
	policies := map[string][]awsemulator.Statement{"reader": {{Action: awsemulator.List{"s3:GetObject", "s3:PutObject"}, Resource: awsemulator.List{"arn:aws:s3:::b/a/*"}}}}
	r, led, err := Record(map[string]string{"AWS_ENDPOINT_URL_S3": behind.URL}, policies, "key")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for who, want := range map[string]int{"reader GET /b/a/x": 200, "reader GET /b/c": 403, "reader DELETE /b/a/x": 403, "somebody DELETE /b/a/x": 200} {
		f := strings.Fields(who)
		req, err := http.NewRequest(f[1], led["AWS_ENDPOINT_URL_S3"]+f[2], nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+f[0]+"/20261120/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=x")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", who, res.StatusCode, want)
		}
	}
	if got := r.Denied(); len(got) != 2 || r.Calls() != 3 {
		t.Errorf("%d calls, refused %q", r.Calls(), got)
	}
	if got := r.Unused("reader"); len(got) != 1 || got[0].Action != "s3:PutObject" {
		t.Errorf("unused: %v", got)
	}
}
