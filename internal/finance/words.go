package finance

import (
	"regexp"
	"strconv"
)

// SQL knows minor units only. Where a reason has an amount, the statements write {1250 EUR}, and it is stored so; whoever reads it is
// told 12.50 EUR.
var amountInWords = regexp.MustCompile(`\{(-?\d{1,19}) ([A-Z]{3})\}`)

// inWords is a reason as people read it.
func inWords(why string) string {
	return amountInWords.ReplaceAllStringFunc(why, func(found string) string {
		part := amountInWords.FindStringSubmatch(found)
		amount, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			return found
		}
		return Major(amount, part[2]) + " " + part[2]
	})
}

// countOf is a number with its noun, such as 1 exception, 2 exceptions.
func countOf[N int | int64](n N, one, many string) string {
	if n != 1 {
		one = many
	}
	return strconv.FormatInt(int64(n), 10) + " " + one
}
