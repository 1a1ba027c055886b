package rights

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// account is the account and region of the installation that the templates describe.
const account = ":us-east-1:123456789012:"

// Uses gives what IAM checks for a request to a service. body is the request's body; keyARN
// is the name that policies have for the one key.
func Uses(service string, r *http.Request, body []byte, keyARN string) ([]Use, error) {
	switch service {
	case "dynamodb":
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		return usesOfDynamoDB(action, body)
	case "sqs":
		return usesOfSQS(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."), body)
	case "kms":
		return usesOfKMS(strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "TrentService."), body, keyARN)
	case "s3":
		return usesOfS3(r, body)
	}
	return nil, fmt.Errorf("rights: no service %s", service)
}

// item holds the keys of an item, or all its attributes.
type item map[string]struct{ S string }

type keyed struct {
	TableName string
	Key, Item item
}

func (k *keyed) use(action string) Use {
	pk := k.Key
	if pk == nil {
		pk = k.Item
	}
	return onTable(k.TableName, action, pk["pk"].S)
}

func onTable(table, action string, partitions ...string) Use {
	slices.Sort(partitions)
	return Use{Action: "dynamodb:" + action, Resource: "arn:aws:dynamodb" + account + "table/" + table,
		Context: map[string][]string{"dynamodb:LeadingKeys": slices.Compact(partitions)}}
}

func usesOfDynamoDB(action string, body []byte) (uses []Use, err error) {
	switch action {
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		var in keyed
		err = json.Unmarshal(body, &in)
		return []Use{in.use(action)}, err
	case "Query":
		return usesOfQuery(body)
	case "BatchGetItem":
		var in struct {
			RequestItems map[string]struct{ Keys []item }
		}
		err = json.Unmarshal(body, &in)
		for table, of := range in.RequestItems {
			var partitions []string
			for _, k := range of.Keys {
				partitions = append(partitions, k["pk"].S)
			}
			uses = append(uses, onTable(table, action, partitions...))
		}
		return uses, err
	case "BatchWriteItem":
		var in struct {
			RequestItems map[string][]struct {
				PutRequest    struct{ Item item }
				DeleteRequest struct{ Key item }
			}
		}
		err = json.Unmarshal(body, &in)
		for table, writes := range in.RequestItems {
			var partitions []string
			for _, w := range writes {
				k := keyed{Key: w.DeleteRequest.Key, Item: w.PutRequest.Item}
				partitions = append(partitions, k.use(action).Context["dynamodb:LeadingKeys"]...)
			}
			uses = append(uses, onTable(table, action, partitions...))
		}
		return uses, err
	case "TransactWriteItems", "TransactGetItems":
		return usesOfTransaction(body)
	}
	return nil, fmt.Errorf("rights: no action dynamodb:%s", action)
}

// usesOfTransaction splits a transaction: each item needs the right of the action that it
// would be on its own.
func usesOfTransaction(body []byte) (uses []Use, err error) {
	var in struct {
		TransactItems []struct{ Put, Update, Delete, Get, ConditionCheck *keyed }
	}
	err = json.Unmarshal(body, &in)
	for _, i := range in.TransactItems {
		for action, k := range map[string]*keyed{"PutItem": i.Put, "UpdateItem": i.Update, "DeleteItem": i.Delete, "GetItem": i.Get, "ConditionCheckItem": i.ConditionCheck} {
			if k != nil {
				uses = append(uses, k.use(action))
			}
		}
	}
	return uses, err
}

var partitionOf = regexp.MustCompile(`\bpk = (:\w+)`)

func usesOfQuery(body []byte) ([]Use, error) {
	var in struct {
		TableName, KeyConditionExpression string
		ExpressionAttributeValues         item
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	m := partitionOf.FindStringSubmatch(in.KeyConditionExpression)
	if m == nil {
		return nil, fmt.Errorf("rights: no partition in %q", in.KeyConditionExpression)
	}
	return []Use{onTable(in.TableName, "Query", in.ExpressionAttributeValues[m[1]].S)}, nil
}

func usesOfSQS(action string, body []byte) ([]Use, error) {
	var in struct{ QueueUrl string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	// A batch needs the right of the action for one message.
	action = strings.TrimSuffix(action, "Batch")
	return []Use{{Action: "sqs:" + action, Resource: "arn:aws:sqs" + account + in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:]}}, nil
}

func usesOfKMS(action string, body []byte, keyARN string) ([]Use, error) {
	var in struct{ EncryptionContext map[string]string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	u := Use{Action: "kms:" + action, Resource: keyARN, Context: map[string][]string{}}
	for k, v := range in.EncryptionContext {
		u.Context["kms:EncryptionContext:"+k] = []string{v}
	}
	if len(in.EncryptionContext) > 0 {
		u.Context["kms:EncryptionContextKeys"] = slices.Sorted(maps.Keys(in.EncryptionContext))
	}
	return []Use{u}, nil
}

// usesOfS3 reads a path-style request: its path begins with the bucket.
func usesOfS3(r *http.Request, body []byte) ([]Use, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	arn := "arn:aws:s3:::" + bucket
	if key == "" && r.Method == http.MethodGet {
		u := Use{Action: "s3:ListBucket", Resource: arn, Context: map[string][]string{}}
		if prefix := r.URL.Query().Get("prefix"); prefix != "" {
			u.Context["s3:prefix"] = []string{prefix}
		}
		return []Use{u}, nil
	}
	if key == "" && r.Method == http.MethodPost && r.URL.Query().Has("delete") {
		var in struct {
			Object []struct{ Key string }
		}
		err := xml.Unmarshal(body, &in)
		var uses []Use
		for _, o := range in.Object {
			uses = append(uses, Use{Action: "s3:DeleteObject", Resource: arn + "/" + o.Key})
		}
		return uses, err
	}
	action := map[string]string{http.MethodGet: "GetObject", http.MethodHead: "GetObject", http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject"}[r.Method]
	if q := r.URL.Query(); q.Has("uploads") || q.Has("uploadId") { // upload of an object in parts
		action = map[string]string{http.MethodPost: "PutObject", http.MethodPut: "PutObject", http.MethodDelete: "AbortMultipartUpload"}[r.Method]
	}
	if key == "" || action == "" {
		return nil, fmt.Errorf("rights: no action s3 %s %s", r.Method, r.URL)
	}
	return []Use{{Action: "s3:" + action, Resource: arn + "/" + key}}, nil
}
