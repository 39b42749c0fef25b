// Answers each line of standard input (secret, timestamp, body, signature in hex; now) with true or false.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func bytesOf(digits string) []byte {
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		panic(err)
	}
	return bytes
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		secret, timestamp := string(bytesOf(fields[0])), string(bytesOf(fields[1]))
		now, err := strconv.ParseInt(fields[4], 10, 64)
		if err != nil {
			panic(err)
		}
		fmt.Println(verify(secret, timestamp, bytesOf(fields[2]), string(bytesOf(fields[3])), now))
	}
}
