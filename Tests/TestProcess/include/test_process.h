// What each process of tests does before its first test. There is nothing to call.
#pragma once
