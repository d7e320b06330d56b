package pump

var blockingPipes = goPipes
