package dynamotest

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"gateway/shared/testkit/storetest"
)

// Deviations are the places where the emulator, dynoxide 1.2.1, differs from
// DynamoDB, as far as storetest meets them:
//
//   - begins_with on the sort key ignores the case of ASCII letters.
//   - REMOVE of m.k where the item has no m succeeds; DynamoDB refuses the path.
//   - An update that only has REMOVE makes an item that was not there.
//   - UpdateItem with ReturnValues ALL_OLD answers with the keys when the item
//     was not there; DynamoDB answers without Attributes. The client of Config
//     corrects this one, at the price that an item of nothing but its keys
//     counts as absent.
//
// Deviations is empty when AWS_ENDPOINT_URL names another service. A stand-in in front of
// the emulator counts as the emulator and says so in a header.
func Deviations() []storetest.Deviation {
	if !Emulated() {
		res, err := http.Get(os.Getenv("AWS_ENDPOINT_URL"))
		if err != nil {
			return nil // the tests will show it
		}
		res.Body.Close()
		if res.Header.Get("X-Stand-In") != "dynoxide" {
			return nil
		}
	}
	return []storetest.Deviation{
		storetest.PrefixIgnoresCase, storetest.RemoveNeedsNoMap, storetest.RemoveMakesRow, storetest.EmptyIsAbsent,
	}
}

// corrected removes the attributes from an answer to UpdateItem if they are only the keys.
type corrected struct{ aws.HTTPClient }

func (c corrected) Do(req *http.Request) (*http.Response, error) {
	res, err := c.HTTPClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".UpdateItem") {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	var answer struct{ Attributes map[string]json.RawMessage }
	if json.Unmarshal(body, &answer) == nil && len(answer.Attributes) == 2 &&
		answer.Attributes["pk"] != nil && answer.Attributes["sk"] != nil {
		body = []byte("{}")
		res.Header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, nil
}
